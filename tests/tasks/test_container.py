"""The container of a command: which word names its image, and whether that says which image it is."""

import pytest

from ablab.config import compose
from ablab.tasks.command.inputs import image_files, image_of, unpinned
from ablab.tasks.plan import plan

DIGEST = f"python@sha256:{64 * 'a'}"


@pytest.mark.parametrize(
    ("line", "image"),
    [
        ("docker run python:3.12 python train.py", "python:3.12"),
        ("docker run --rm -it -v /a:/b --gpus all --name=x python:3.12 train", "python:3.12"),
        ("/usr/bin/podman run -e A=1 -u 1000 -w /work image", "image"),
        ("docker container run --network none image word", "image"),
        ("docker run --rm -it", None),
        ("apptainer exec --nv --bind /a:/b -e image.sif python x.py", "image.sif"),
        ("singularity run docker://python:3.12", "docker://python:3.12"),
        ("apptainer -q exec image.sif x", "image.sif"),
        ("python run image", None),
        ("docker ps", None),
    ],
)
def test_the_word_that_names_the_image(line, image):
    assert image_of(line.split()) == image


def test_only_a_digest_or_a_file_pins_an_image(tmp_path):
    image = tmp_path / "image.sif"
    image.touch()
    assert unpinned(["docker", "run", "python:latest"]) == "python:latest"
    assert unpinned(["docker", "run", DIGEST]) is None
    assert unpinned(["apptainer", "exec", str(image)]) is None
    assert unpinned(["apptainer", "exec", "docker://python"]) == "docker://python"
    assert unpinned(["python", "train.py"]) is None


def test_another_image_is_another_run_and_a_declared_one_is_an_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program, image = tmp_path / "apptainer", tmp_path / "image.sif"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    words = ["task=command", f"task.command=[{program},exec,{image},x,'{{seed}}','{{result}}']"]
    words += ["task.scores={loss: {better: lower}}", "logger=none"]

    def recipe(*more):
        return plan(compose([*words, *more])).recipe

    image.write_bytes(b"one")
    first = recipe()
    assert len(first["container"]) == 1
    image.write_bytes(b"another")
    assert recipe()["container"] != first["container"]
    assert "container" not in recipe(f"task.inputs=[{image}]")
    around = {"APPTAINER_CONTAINER": str(image)}
    assert image_files(["python", "x.py"], [], around) == [str(image)]
    assert image_files(["python", "x.py"], [], {"APPTAINER_CONTAINER": "/nowhere.sif"}) == []
    assert image_files([str(program), "exec", str(image)], [], around) == [str(image)], "once"
