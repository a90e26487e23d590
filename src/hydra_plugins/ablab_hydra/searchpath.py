"""The user's folders of options, in every search path of Hydra that begins with ablab's own folder."""

from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin


class UserFolders(SearchPathPlugin):
    """Adds ./conf, the folders of --config-dir and those of installed packages, before ablab's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Leave the search paths of other applications alone."""
        from ablab.code.folders import shipped_conf, user_confs

        if any((each.path or "").removeprefix("file://") == str(shipped_conf()) for each in search_path.get_path()):
            for conf in reversed(user_confs()):
                search_path.prepend("ablab", f"{OptionFiles.scheme()}://{conf}")


class OptionFiles(FileConfigSource):
    """A folder of the user's whose files are read as experiment files are, so that `tgt: no` is a language."""

    @staticmethod
    def scheme() -> str:
        """Return the name that a search path has for such folders."""
        return "ablab"

    def load_config(self, config_path: str) -> ConfigResult:
        """Return the content of a file, and what its header says."""
        from omegaconf import OmegaConf

        from ablab.config.plain_yaml import read_yaml

        text = Path(self.path, self._normalize_file_name(config_path)).read_text(encoding="utf-8")
        return ConfigResult(
            config=OmegaConf.create(read_yaml(text) or {}),
            path=f"{self.scheme()}://{self.path}",
            provider=self.provider,
            header=self._get_header_dict(text),
        )
