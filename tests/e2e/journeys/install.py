"""Install kubetwist from its wheel, and ask C{twist kubeapi} for its flags."""

from __future__ import annotations

from .steps import Steps, build_wheel, run_alone


def walk(steps: Steps) -> None:
    """Install the wheel in the environment."""
    wheel = build_wheel(steps.python, steps.folder / "build")
    with steps.step("install: pip install kubetwist"):
        steps.pip("install", "--quiet", wheel)
    with steps.step("install: twist kubeapi --help"):
        text = steps.run(steps.python.with_name("twist"), "kubeapi", "--help")
    assert "--secure-port" in text, text


def main() -> None:
    """Run the journey in a new environment."""
    run_alone(walk, installed=False)


if __name__ == "__main__":
    main()
