"""Compiled loops over whole pages. Rooms are named by what they serve; what all of them share is here."""
