"""Steps of the data database."""
