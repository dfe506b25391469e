"""How fast it is, and that speed costs no promise. See bench/README.md."""
