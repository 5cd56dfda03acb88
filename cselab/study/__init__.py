"""What the papers print, and where they differ from their released code."""
