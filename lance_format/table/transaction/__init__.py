"""Operations as pure values: their stored form, their effect on a manifest, and their conflicts."""
