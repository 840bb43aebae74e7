"""What each command does: a module per command, loaded when the command is called, and what they share."""
