"""The live room: today's visits by status, and what is to be done next with each."""
