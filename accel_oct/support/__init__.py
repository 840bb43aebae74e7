"""Support for every layer: checks of arguments, files, stopping, progress."""
