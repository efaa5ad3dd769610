"""The ATen table: every composite, by family. Importing it registers them all."""
