"""The models of a session: servers, choosing and setting up a model, disclosures."""
