"""
The start-up hook of accelerated workers. Python imports it from PYTHONPATH at its start. It runs the
sitecustomize that the image has, waits for the public SDK to be imported, and then loads the rest. This
folder holds nothing else: each of its files would hide a module of the same name. Old Pythons must be able to
read this file, and nothing here may raise.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))
#: The name under which the package is loaded, so that it does not meet another version in the image.
PACKAGE_NAME = "_berth_worker"
OLDEST_PYTHON = (3, 10)
#: The modules of the public SDK that are changed after their import.
MODULES = ("runpod.serverless.worker", "runpod.serverless.modules.rp_progress")


def say(message):
    """
    One line for the log of the worker. Not on standard output, which may belong to a program that the worker
    calls.
    """
    try:
        sys.stderr.write("berth: this worker is not accelerated: {}\n".format(message))
        sys.stderr.flush()
    except Exception:
        pass


def run_hidden_sitecustomize():
    """The one that Python would have imported without this folder."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    own = sys.modules.pop("sitecustomize", None)
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        if own is not None:
            sys.modules["sitecustomize"] = own
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    # Python itself reports what goes wrong in it, as it would without this folder.
    spec.loader.exec_module(module)


def load_package():
    if PACKAGE_NAME in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        PACKAGE_NAME, os.path.join(PACKAGE, "__init__.py"), submodule_search_locations=[PACKAGE]
    )
    if spec is None or spec.loader is None:
        raise ImportError("{} is missing".format(PACKAGE))
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE_NAME] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[PACKAGE_NAME]
        raise


class SdkFinder:
    """Finds the modules as Python would, and changes them after they were executed."""

    def __init__(self):
        self.finding = set()
        self.failed = False

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES or name in self.finding:
            return None
        self.finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.finding.discard(name)
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "exec_module"):
            return None
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            self.change(module)

        try:
            loader.exec_module = exec_module
        except Exception:
            return None
        return spec

    def change(self, module):
        if self.failed:
            return
        try:
            if sys.version_info < OLDEST_PYTHON:
                raise RuntimeError(
                    "Python {}.{} is older than {}.{}".format(*(sys.version_info[:2] + OLDEST_PYTHON))
                )
            load_package()
            public_sdk = importlib.import_module(PACKAGE_NAME + ".accelerate.public_sdk")
            public_sdk.change(module)
        except Exception as error:
            self.failed = True
            say(
                "{}: {}".format(type(error).__name__, error) if not isinstance(error, RuntimeError) else error
            )


def is_wanted():
    """On a platform, and not turned off."""
    return "RUNPOD_WEBHOOK_GET_JOB" in os.environ and os.environ.get(
        "BERTH_ACCELERATE", "on"
    ).lower() not in ("off", "0", "false", "no")


try:
    if is_wanted():
        sys.meta_path.insert(0, SdkFinder())
except Exception as error:
    say(error)
run_hidden_sitecustomize()
