"""The code pane without a widget: which rows there are and how a row is painted."""
