"""What several test modules share: instances, checks and ways to run things."""
