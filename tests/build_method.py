"""What tests of methods and of training share: a method on saved towers."""

from cselab.methods import Method, create, registered


def build(name: str, folders, **changes) -> Method:
    """The method in evaluation mode, from as many of the folders as it has towers.

    changes: settings by dotted path; twins have 2 CAELs, for the towers of tests have 2 or 4
    layers.
    """
    kind = registered(name)
    config = kind.Config()
    usual = {path: value for path, value in {"caels": 2}.items() if config.takes(path)}
    config = config.changed({**usual, **changes})
    return create(config, folders=folders[: len(kind.tower_names)]).eval()
