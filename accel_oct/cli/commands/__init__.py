"""Commands, one module each, which is imported when the command is called; and shared modules."""
