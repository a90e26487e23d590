"""The user's folders of options, in every search path of Hydra that begins with ablab's own folder."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin


class UserFolders(SearchPathPlugin):
    """Adds ./conf, the folders of --config-dir and those of installed packages, before ablab's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Leave the search paths of other applications alone."""
        from ablab.parts.folders import user_confs
        from ablab.parts.shipped import shipped_conf

        if any((each.path or "").removeprefix("file://") == str(shipped_conf()) for each in search_path.get_path()):
            for conf in reversed(user_confs()):
                search_path.prepend("ablab", f"file://{conf}")
