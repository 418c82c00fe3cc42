"""What the code pane shows, without a widget: which rows there are and how a row is painted."""
