"""Files and folders that are written whole or not at all, and verified when read.

A folder (a model, a checkpoint) is filled under a temporary name beside its target; its manifest
is written last, with the SHA-256 of every file and of itself; one rename puts it in place.
Nothing is ever unpickled. This package loads torch only inside the functions that need it.
"""

from regard.saving.files import check_writable, make_room, read_json, remove_leftovers, write_file
from regard.saving.folders import (
    FORMAT_VERSION,
    MANIFEST,
    remove_folder,
    verify_folder,
    write_folder,
)
from regard.saving.tensors import check_safetensors, load_tensors, save_tensors

__all__ = [
    "FORMAT_VERSION",
    "MANIFEST",
    "check_safetensors",
    "check_writable",
    "load_tensors",
    "make_room",
    "read_json",
    "remove_folder",
    "remove_leftovers",
    "save_tensors",
    "verify_folder",
    "write_file",
    "write_folder",
]
