"""How sources reach what they read. Nothing here knows a system."""
