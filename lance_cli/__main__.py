"""`python -m lance_cli` is `pyspark-lance`."""

from lance_cli import main

if __name__ == "__main__":
    main()
