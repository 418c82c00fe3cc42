"""Typed settings.

``declarations`` is the table of settings, ``endpoints`` that of an endpoint's fields,
``value_types`` what their values can be; ``store`` reads them from files and environment, and
writes the user's file.
"""

from midstream.settings.declarations import KEY_PRESETS as KEY_PRESETS
from midstream.settings.declarations import OWN_EFFORTS as OWN_EFFORTS
from midstream.settings.declarations import SESSION_EFFORTS as SESSION_EFFORTS
from midstream.settings.declarations import SETTINGS as SETTINGS
from midstream.settings.declarations import Setting as Setting
from midstream.settings.declarations import Settings as Settings
from midstream.settings.declarations import check_setting as check_setting
from midstream.settings.store import PROJECT_FILE as PROJECT_FILE
from midstream.settings.store import ConfigFileError as ConfigFileError
from midstream.settings.store import ResolvedSetting as ResolvedSetting
from midstream.settings.store import Source as Source
from midstream.settings.store import change_file as change_file
from midstream.settings.store import file_text as file_text
from midstream.settings.store import folder_table as folder_table
from midstream.settings.store import load_settings as load_settings
from midstream.settings.store import resolve_settings as resolve_settings
from midstream.settings.store import write_file as write_file
from midstream.settings.value_types import Kind as Kind
