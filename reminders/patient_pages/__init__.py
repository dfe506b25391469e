"""What a patient sees and does without an account, by the link in a message."""
