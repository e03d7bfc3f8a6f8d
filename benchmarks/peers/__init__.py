"""The measured programs: the bare-pipes floor, and each peer at its best fair setting, in its own venv."""
