"""C{twist fortunes}: a resource with stored objects, and one whose objects are computed on request."""

from kubetwist.extension import ExtensionOptions, Resource, make_service

FORTUNES = Resource(
    group="fun.example.com",
    version="v1",
    kind="Fortune",
    plural="fortunes",
    short_names=["fo"],
    schema={
        "spec": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "minLength": 1},
                "luck": {"type": "integer", "default": 7, "minimum": 0},
            },
            "x-kubernetes-validations": [
                {"rule": "self.luck < 13 || self.text.size() < 20", "message": "bad luck must be short"}
            ],
        }
    },
    required=["spec"],
    columns=[
        {"name": "Luck", "type": "integer", "jsonPath": ".spec.luck"},
        {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
    ],
)


def visitors(namespace, user):
    """Yield one object: the user of the request."""
    yield {
        "apiVersion": "fun.example.com/v1",
        "kind": "Visitor",
        "metadata": {"name": user.name.replace(":", "-")},
        "groups": sorted(user.groups),
    }


VISITORS = Resource(
    group="fun.example.com",
    version="v1",
    kind="Visitor",
    plural="visitors",
    namespaced=False,
    schema={"groups": {"type": "array", "items": {"type": "string"}}},
    columns=[{"name": "Groups", "type": "string", "jsonPath": ".groups"}],
    compute=visitors,
)


class Options(ExtensionOptions):
    """The command line options of C{twist fortunes}."""

    command = "fortunes"


def makeService(options):
    """Return the service that C{twist fortunes} starts."""
    return make_service(options, [FORTUNES, VISITORS])
