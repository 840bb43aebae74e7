"""What every room may use and that knows of none: checks of arguments, files, interrupts."""
