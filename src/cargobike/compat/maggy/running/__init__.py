"""What stands behind Maggy's names: its calls as calls of ours, its objects as objects of ours, and back."""
