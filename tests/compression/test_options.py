"""Options of fields: valid ones are parsed, and invalid ones are refused by name."""

from __future__ import annotations

import pytest

from lance_format.compression.byte_codecs import LZ4, ZSTD
from lance_format.compression.options import ByteStreamSplitMode, CompressionOptions, Scheme, understood
from lance_format.errors import InvalidInputError


def _parse(**options: str) -> CompressionOptions:
    metadata = {b"lance-encoding:" + name.replace("_", "-").encode(): text.encode() for name, text in options.items()}
    return CompressionOptions.parse({**metadata, b"other": b"key"}, "c")


def test_defaults() -> None:
    assert CompressionOptions.parse(None, "c") == CompressionOptions.parse({}, "c") == CompressionOptions()


def test_all_of_them() -> None:
    options = _parse(
        compression="zstd",
        compression_level="22",
        rle_threshold="0.25",
        bss="on",
        dict_divisor="10",
        dict_size_ratio="1.0",
        dict_max_size="4096",
        dict_values_compression="zstd",
        dict_values_compression_level="-7",
        minichunk_size="1024",
    )
    expected = CompressionOptions(Scheme.ZSTD, 22, 0.25, ByteStreamSplitMode.ON, 10, 1.0, 4096, Scheme.ZSTD, -7, 1024)
    assert options == expected
    assert (options.general_scheme, _parse(compression="lz4").general_scheme) == (ZSTD, LZ4)
    assert _parse(compression="none").general_scheme is None
    assert _parse(compression="fsst").general_scheme is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compression", "snappy"),
        ("compression", ""),
        ("compression", "ZSTD"),
        ("compression", " zstd"),
        ("compression-level", "-131073"),
        ("compression-level", "3.0"),
        ("compression-level", " 3"),
        ("compression-level", "1_0"),
        ("compression-level", "23"),
        ("compression-level", "high"),
        ("rle-threshold", "1.01"),
        ("rle-threshold", "-0.1"),
        ("rle-threshold", "nan"),
        ("rle-threshold", "half"),
        ("bss", "yes"),
        ("rle-threshold", " 0.5"),
        ("rle-threshold", "0_1"),
        ("rle-threshold", "inf"),
        ("dict-max-size", "-1"),
        ("dict-values-compression-level", "x"),
        ("dict-divisor", "1"),
        ("dict-divisor", "2.5"),
        ("dict-size-ratio", "0"),
        ("dict-size-ratio", "1.5"),
        ("dict-values-compression", "fsst"),
        ("minichunk-size", "0"),
        ("minichunk-size", "4k"),
        ("minichunk-size", "1073741825"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"column 'c': option 'lance-encoding:{name}' is '{text}'"):
        CompressionOptions.parse({f"lance-encoding:{name}".encode(): text.encode()}, "c")


def test_lz4_has_no_levels() -> None:
    for name in ("", "dict_values_"):
        with pytest.raises(InvalidInputError, match="no levels"):
            _parse(**{f"{name}compression": "lz4", f"{name}compression_level": "3"})


def test_what_is_understood_of_metadata() -> None:
    texts = {
        "lance-encoding:compression": "lz4",
        "lance-encoding:compression-level": "3",
        "lance-encoding:bss": "maybe",
        "lance-encoding:rle-threshold": "0.25",
        "lance-encoding:general": "zstd",
        "lance-encoding:packed": "true",
        "lance-encoding:blob": "true",
        "unit": "px",
    }
    followed, wrong = understood({key.encode(): value.encode() for key, value in texts.items()}, "c")
    assert followed == {b"lance-encoding:compression": b"lz4", b"lance-encoding:rle-threshold": b"0.25"}
    assert [str(error).split("'lance-encoding:")[1].split("'")[0] for error in wrong] == [
        "compression-level",
        "bss",
        "general",
    ]
