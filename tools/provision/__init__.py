"""What tools/setup.py is made of; the standard library only, since it runs before .venv exists."""
