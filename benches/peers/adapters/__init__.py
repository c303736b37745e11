"""One small class for each program, used in a process of the environment that has it."""
