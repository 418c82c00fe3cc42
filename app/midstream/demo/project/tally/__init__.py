"""Invoices from logged hours."""
