"""The files of a run, read by an independent MCAP implementation (PyPI: mcap, mcap-protobuf-support), and held against
what viewers need: schemas that decode, a transform for every frame, annotations with the stamp of their picture,
lifetimes, no zero stamps, and a shipped layout whose topics exist.

usage: results_oracle.py TAKT PROJECT
"""
import json
import pathlib
import subprocess
import sys
import tempfile
from collections import defaultdict

from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

TAKT, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
DRIVE = PROJECT / "replay_data/city.mcap"


def ns(stamp):
    return stamp.seconds * 1_000_000_000 + stamp.nanos


def messages(path):
    """(schema name, topic, record, decoded message) of every message; CRCs checked."""
    factory = DecoderFactory()
    decoders = {}
    with open(path, "rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        for schema, channel, message in reader.iter_messages():
            if schema.encoding == "jsonschema":
                yield schema.name, channel.topic, message, json.loads(message.data)
                continue
            if schema.id not in decoders:
                decoders[schema.id] = factory.decoder_for("protobuf", schema)
            decoded = decoders[schema.id](message.data)
            assert decoded.DESCRIPTOR.full_name == schema.name, schema.name
            yield schema.name, channel.topic, message, decoded


def check_results(path, image_stamps):
    counts, frames, known_frames = defaultdict(int), set(), set()
    boxes = annotated = 0
    for name, topic, record, message in messages(path):
        counts[topic] += 1
        assert record.log_time > 0 and record.publish_time > 0, topic
        if name == "foxglove.SceneUpdate":
            for entity in message.entities:
                boxes += 1
                frames.add(entity.frame_id)
                assert entity.id and ns(entity.timestamp) == record.publish_time, topic
                assert ns(entity.lifetime) > 0, f"{topic}: a box without a lifetime never goes away"
                assert entity.frame_locked, f"{topic}: boxes of the vehicle frame move with it"
                for cube in entity.cubes:
                    assert min(cube.size.x, cube.size.y, cube.size.z) > 0
        elif name == "foxglove.ImageAnnotations":
            for annotation in [*message.points, *message.texts]:
                annotated += 1
                assert ns(annotation.timestamp) in image_stamps, f"{topic}: no picture has this stamp"
        elif name == "foxglove.FrameTransforms":
            for transform in message.transforms:
                assert ns(transform.timestamp) > 0
                known_frames |= {transform.parent_frame_id, transform.child_frame_id}
        elif name in ("takt.TrackList", "takt.ObjectList", "takt.Truth"):
            assert ns(message.timestamp) > 0
    assert boxes > 0 and annotated > 0
    assert frames and frames <= known_frames, f"frames without a transform: {frames - known_frames}"
    assert all(count > 1 for count in counts.values()), counts
    return set(counts)


def check_records(path):
    topics = set()
    for name, topic, record, message in messages(path):
        topics.add(topic)
        assert name in ("takt.JobRecord", "takt.JobMetrics"), name
    return topics


def layout_topics(layout):
    configs = layout["configById"]
    topics = set(configs["3D!takt"]["topics"])
    image = configs["Image!takt"]["imageMode"]
    topics |= {image["imageTopic"], image["calibrationTopic"], *image["annotations"]}
    topics |= {path["value"].rsplit(".", 1)[0] for path in configs["Plot!takt"]["paths"]}
    topics.add(configs["RawMessages!takt"]["topicPath"])
    panels = []

    def collect(node):
        if isinstance(node, str):
            panels.append(node)
        else:
            collect(node["first"])
            collect(node["second"])

    collect(layout["layout"])
    assert sorted(panels) == sorted(configs), "every panel has a configuration and a place"
    return topics


def main():
    with tempfile.TemporaryDirectory() as name:
        run = pathlib.Path(name) / "run"
        subprocess.run([TAKT, "replay", PROJECT / "configs/pipelines/sim.yaml", DRIVE, "-o", run, "--lockstep",
                        "--transport", "local", "--quiet"], check=True, stdin=subprocess.DEVNULL)
        image_stamps, drive_topics, drive_frames, drive_known = set(), set(), set(), set()
        for kind, topic, record, message in messages(DRIVE):
            drive_topics.add(topic)
            if kind == "foxglove.CompressedImage":
                image_stamps.add(ns(message.timestamp))
            if kind == "foxglove.FrameTransforms":
                for transform in message.transforms:
                    drive_known |= {transform.parent_frame_id, transform.child_frame_id}
            elif getattr(message, "frame_id", ""):
                drive_frames.add(message.frame_id)
        assert drive_frames <= drive_known, drive_frames - drive_known
        topics = check_results(run / "results.mcap", image_stamps)
        topics |= check_records(run / "records.mcap") | drive_topics

        layout = json.loads((PROJECT / "docs/foxglove_layout.json").read_text())
        shown = layout_topics(layout)
        assert shown <= topics, f"the layout names topics that no file has: {shown - topics}"
        metrics = set()  # a job that did not start has fewer numbers
        for kind, _, _, message in messages(run / "records.mcap"):
            if kind == "takt.JobMetrics":
                metrics |= set(message)
        for path in layout["configById"]["Plot!takt"]["paths"]:
            assert path["value"].rsplit(".", 1)[1] in metrics, (path["value"], metrics)
        follow = layout["configById"]["3D!takt"]["followTf"]
        assert follow in drive_known, follow
    print("the files of a run are what viewers need")


main()
