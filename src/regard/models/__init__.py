"""Models: encoders, decoders, decoding. They know no files."""
