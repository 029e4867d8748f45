"""Where code came from: source files, the functions in them, and maps from pcs to places, read from build artifacts."""
