"""What sources share to reach what they read, and that knows no system."""
