"""Support for every layer: types of arrays, checks of arguments, files, stopping, progress."""
