"""Written whole or not at all, whatever stood there before."""

import os
import stat

import pytest

from maxmargin.data.atomic import replacing


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_what_was_there(tmp_path, before, error):
    path = tmp_path / "a.bin"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(error), replacing(path) as out:
        out.write(b"half")
        raise error
    assert [p.name for p in tmp_path.iterdir()] == ([] if before is None else ["a.bin"])
    assert before is None or path.read_bytes() == before


def test_readers_see_the_old_file_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with replacing(path) as out:
        out.write(b"new")
        out.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as on POSIX")
def test_permissions_links_and_devices_stay(tmp_path):
    umask = os.umask(0o027)
    try:
        with replacing(tmp_path / "fresh") as out:
            out.write(b"x")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o604)
    link.symlink_to(real)
    with replacing(link) as out:
        out.write(b"new")
    assert link.is_symlink() and real.read_bytes() == b"new" and stat.S_IMODE(real.stat().st_mode) == 0o604
    with replacing("/dev/null") as out:
        out.write(b"gone")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)


def test_no_folder_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "a.bin") as out:
        out.write(b"x")
