"""Kind and size of images from their headers."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from taskweaver.utils.images import ImageHeader, image_header


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_the_size_stands_in_the_header(kind: str) -> None:
    for is_lossless in (False, True) if kind == "webp" else (False,):
        buffer = io.BytesIO()
        Image.new("RGB", (321, 45)).save(buffer, kind.upper(), lossless=is_lossless)
        assert image_header(buffer.getvalue()) == ImageHeader(kind, 321, 45)


@given(st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b""]), st.binary())
def test_any_bytes_are_read_without_a_failure(start: bytes, rest: bytes) -> None:
    found = image_header(start + rest)
    assert found is None or (found.width > 0 and found.height > 0)
