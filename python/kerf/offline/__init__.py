"""Kernel files for targets that compute in tiles, made and checked without the device."""
