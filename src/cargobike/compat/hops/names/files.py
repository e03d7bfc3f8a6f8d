"""Names of hops for the project's files, and arrays and tables in them."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_STORAGE: Final = "`storage = open_storage(project.path())`"
_OPEN: Final = "cargobike.storage.open_storage"
_PATH: Final = "cargobike.project.path"

TRANSLATIONS: Final[tuple[Translation, ...]] = (
    Translation("hops.hdfs.project_path", _PATH, remark='without a slash at the end; `project.path("Resources", "x")`'),
    Translation("hops.hdfs.project_name", "", remark="a project is named by where it lies: `project.current().root`"),
    Translation("hops.hdfs.project_user", "", remark="experiments record the user: `result.user`"),
    Translation("hops.hdfs.project_id", "", remark="a project is named by where it lies: `project.current().root`"),
    Translation("hops.hdfs.copy_to_hdfs", _OPEN, remark=f"{_STORAGE}, `storage.write(path, Path(local))`"),
    Translation("hops.hdfs.copy_to_project", _OPEN, remark="as `copy_to_hdfs`"),
    Translation("hops.hdfs.copy_to_local", _OPEN, remark=f"{_STORAGE}, `storage.read(path)`"),
    Translation("hops.hdfs.copy_from_project", _OPEN, remark="as `copy_to_local`"),
    Translation("hops.hdfs.ls", _OPEN, remark=f"{_STORAGE}, `storage.list(folder)`; there are no empty folders"),
    Translation("hops.hdfs.lsl", _OPEN, remark=f"{_STORAGE}, `storage.list(folder)`: path, size and token"),
    Translation("hops.hdfs.glob", _OPEN, remark=f"{_STORAGE}, `storage.list(folder, deep=True)` and `fnmatch`"),
    Translation("hops.hdfs.exists", _OPEN, remark=f"{_STORAGE}, `storage.stat(path) is not None`"),
    Translation("hops.hdfs.isdir", _OPEN, remark=f"{_STORAGE}, `any(storage.list(folder, deep=True))`"),
    Translation("hops.hdfs.isfile", _OPEN, remark=f"{_STORAGE}, `storage.stat(path) is not None`"),
    Translation(
        "hops.hdfs.load", _OPEN, remark=f"{_STORAGE}, `storage.read(path)`, which is `None` if there is no file"
    ),
    Translation("hops.hdfs.dump", _OPEN, remark=f"{_STORAGE}, `storage.write(path, data)`"),
    Translation("hops.hdfs.mkdir", "", remark="not needed: a folder is there when a file is in it"),
    Translation("hops.hdfs.rmr", _OPEN, remark=f"{_STORAGE}, `storage.delete(path)`"),
    Translation("hops.hdfs.delete", _OPEN, remark=f"{_STORAGE}, `storage.delete(path)`, which deletes folders too"),
    Translation("hops.hdfs.cp", _OPEN, remark=f"{_STORAGE}, `storage.write(target, storage.read(source))`"),
    Translation("hops.hdfs.move", _OPEN, remark="copy, then `storage.delete(source)`"),
    Translation("hops.hdfs.rename", _OPEN, remark="copy, then `storage.delete(source)`"),
    Translation("hops.hdfs.stat", _OPEN, remark=f"{_STORAGE}, `storage.stat(path)`: path, size and token"),
    Translation("hops.hdfs.chmod", "", remark="on a disk `os.chmod`; storages keep no modes"),
    Translation("hops.hdfs.chown", "", remark="on a disk `shutil.chown`; storages keep no owners"),
    Translation("hops.hdfs.access", "", remark="on a disk `os.access`; storages keep no modes"),
    Translation("hops.hdfs.abs_path", _PATH, remark="`project.path(…)` is full"),
    Translation("hops.hdfs.get_plain_path", "", remark="paths in the project have no other form"),
    Translation("hops.hdfs.open_file", _OPEN, remark=f"{_STORAGE}, `storage.arrow()`: a file system of pyarrow's"),
    Translation("hops.hdfs.get_fs", _OPEN, remark=f"{_STORAGE}, `storage.arrow()`: a file system of pyarrow's"),
    Translation("hops.hdfs.get", _OPEN, remark="as `get_fs`"),
    Translation("hops.hdfs.close", "", remark="not needed"),
    Translation("hops.hdfs.capacity", "", remark="on a disk `shutil.disk_usage`"),
    Translation("hops.hdfs.is_tls_enabled", "", remark="credentials are found where each storage's library looks"),
    Translation("hops.hdfs.log", "", remark="`print`: what a train function prints is kept with its trial"),
    Translation("hops.hdfs.add_module", "", remark="modules beside a function travel with it"),
    *(
        Translation(f"hops.numpy_helper.{name}", "", remark=f"`numpy.{name}` of a file below `project.path()`")
        for name in (
            "load",
            "loadtxt",
            "genfromtxt",
            "fromregex",
            "fromfile",
            "memmap",
            "save",
            "savez",
            "savez_compressed",
        )
    ),
    Translation("hops.pandas_helper.read_csv", "pandas.read_csv", remark='of `project.path("data.csv")`, also on S3'),
    Translation("hops.pandas_helper.read_json", "pandas.read_json", remark='of `project.path("data.json")`'),
    Translation("hops.pandas_helper.read_excel", "pandas.read_excel", remark='of `project.path("data.xlsx")`'),
    Translation("hops.pandas_helper.read_parquet", "pandas.read_parquet", remark='of `project.path("data.parquet")`'),
    Translation("hops.pandas_helper.write_csv", "", remark='`frame.to_csv(project.path("data.csv"))`'),
    Translation("hops.pandas_helper.write_json", "", remark='`frame.to_json(project.path("data.json"))`'),
    Translation("hops.pandas_helper.write_parquet", "", remark='`frame.to_parquet(project.path("data.parquet"))`'),
    *(
        Translation(f"pydoop.hdfs.{name}", _OPEN, remark=f"as `hops.hdfs.{hops}`")
        for name, hops in (
            ("open", "open_file"),
            ("ls", "ls"),
            ("lsl", "lsl"),
            ("load", "load"),
            ("dump", "dump"),
            ("mkdir", "mkdir"),
            ("rm", "delete"),
            ("rmr", "rmr"),
            ("cp", "cp"),
            ("move", "move"),
            ("mv", "move"),
            ("rename", "rename"),
            ("put", "copy_to_hdfs"),
            ("get", "copy_to_local"),
            ("stat", "stat"),
            ("hdfs", "get_fs"),
            ("path.abspath", "abs_path"),
            ("path.exists", "exists"),
        )
    ),
    Translation("hops.dataset.upload", _OPEN, remark=f"{_STORAGE}, `storage.write(path, Path(local))`"),
    Translation("hops.dataset.download", _OPEN, remark=f"{_STORAGE}, `storage.read(path)`"),
    Translation("hops.dataset.delete", _OPEN, remark=f"{_STORAGE}, `storage.delete(path)`"),
    Translation("hops.dataset.path_exists", _OPEN, remark=f"{_STORAGE}, `storage.stat(path) is not None`"),
    Translation("hops.dataset.compress", "", remark="`zipfile` and `storage.write`"),
    Translation("hops.dataset.extract", "", remark="`zipfile` and `storage.write`"),
)
