"""An independent MCAP implementation (PyPI: mcap, mcap-protobuf-support) against takt's, in both directions.

usage: mcap_oracle.py ORACLE_TOOL
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from mcap.reader import NonSeekingReader, make_reader
from mcap.writer import CompressionType, IndexType, Writer
from mcap_protobuf.decoder import DecoderFactory

TOOL = sys.argv[1]
MESSAGES = 20
TYPES = {
    "/image": "foxglove.CompressedImage",
    "/calibration": "foxglove.CameraCalibration",
    "/lidar": "foxglove.PointCloud",
    "/radar": "foxglove.PointCloud",
    "/tf": "foxglove.FrameTransforms",
    "/ego": "foxglove.PoseInFrame",
    "/ego/takt": "takt.EgoMotion",
    "/truth": "foxglove.SceneUpdate",
    "/truth/takt": "takt.Truth",
    "/boxes": "foxglove.ImageAnnotations",
    "/tracks/takt": "takt.TrackList",
    "/objects/takt": "takt.ObjectList",
    "/jobs/takt": "takt.JobRecord",
    "/jobs": "takt.JobMetrics",
}


def check_stamp(topic, message, publish_time):
    """The stamp inside a message is the publish time of its record."""
    stamped = {"/tf": lambda m: m.transforms[0], "/truth": lambda m: m.entities[0], "/boxes": lambda m: m.points[0]}
    if topic in ("/tracks/takt", "/objects/takt", "/jobs/takt"):
        return
    stamp = stamped.get(topic, lambda m: m)(message).timestamp
    assert stamp.seconds * 1_000_000_000 + stamp.nanos == publish_time, topic


def read_ours(path):
    """Everything that takt wrote, read by the oracle: CRCs, index, statistics, schemas, fields."""
    with open(path, "rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        assert reader.get_header().profile == "takt"
        assert summary.statistics.message_count == MESSAGES * len(TYPES), summary.statistics
        assert summary.statistics.chunk_count == len(summary.chunk_indexes) > 3
        assert {c.topic: summary.schemas[c.schema_id].name for c in summary.channels.values()} == TYPES
        attachments = list(reader.iter_attachments())
        assert [a.data for a in attachments] == [b"attached text"]
        assert [m.metadata for m in reader.iter_metadata()] == [{"drive": "simulated"}]

        count, last = 0, 0
        for schema, channel, message in reader.iter_messages():
            assert message.log_time >= last
            last = message.log_time
            count += 1
            if schema.encoding == "jsonschema":
                assert json.loads(message.data)["stage"] == "fusion"
                assert json.loads(schema.data)["title"] == schema.name
                continue
            decoded = DecoderFactory().decoder_for("protobuf", schema)(message.data)
            assert decoded.DESCRIPTOR.full_name == TYPES[channel.topic]
            check_stamp(channel.topic, decoded, message.publish_time)
            if channel.topic == "/lidar":
                assert [f.name for f in decoded.fields] == ["x", "y", "z", "intensity", "time_offset_ns", "ring"]
                assert len(decoded.data) == 50 * decoded.point_stride
            if channel.topic == "/tracks/takt":
                assert decoded.tracks[0].id == message.sequence + 1
            if channel.topic == "/jobs/takt":
                assert decoded.HasField("nominal_start_ns") and not decoded.HasField("completion_ns")
        assert count == MESSAGES * len(TYPES)

    with open(path, "rb") as stream:  # front to back, without the index
        reader = NonSeekingReader(stream, validate_crcs=True)
        assert sum(1 for _ in reader.iter_messages()) == MESSAGES * len(TYPES)


def write_theirs(path, compression, chunked, indexed):
    """Messages in reverse order on three channels, two of them of one topic. Returns them in takt's order."""
    written = []
    with open(path, "wb") as stream:
        writer = Writer(stream, compression=compression, chunk_size=500, use_chunking=chunked,
                        index_types=IndexType.ALL if indexed else IndexType.NONE, use_statistics=indexed,
                        use_summary_offsets=indexed, repeat_channels=indexed, repeat_schemas=indexed)
        writer.start("other", "oracle")
        schema = writer.register_schema("test.Json", "jsonschema", b"{}")
        channels = [(topic, writer.register_channel(topic, "json", schema)) for topic in ("/b", "/a", "/a")]
        index = {channel: 0 for _, channel in channels}
        for i in reversed(range(60)):
            topic, channel = channels[i % 3]
            data = json.dumps({"i": i, "text": "x" * (i * 7 % 90)}).encode()
            log_time, publish_time = 1_000 + i // 6 * 10, 900 + i % 4
            writer.add_message(channel, log_time, data, publish_time, i)
            written.append((log_time, topic, publish_time, channel, index[channel], data))
            index[channel] += 1
        writer.add_attachment(1, 1, "a.txt", "text/plain", b"attached")
        writer.add_metadata("m", {"k": "v"})
        writer.finish()
    return [f"{topic} {log} {publish} {data.hex()}" for log, topic, publish, _, _, data in sorted(written)]


def dump(path):
    result = subprocess.run([TOOL, "dump", str(path)], check=True, capture_output=True, text=True)
    lines = result.stdout.splitlines()
    return [l for l in lines if not l.startswith("problem: ")], [l for l in lines if l.startswith("problem: ")]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([TOOL, "write", name], check=True)
        for kind in ("none", "lz4", "zstd"):
            read_ours(folder / f"{kind}.mcap")

        for compression in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD):
            for chunked in (True, False):
                for indexed in (True, False):
                    path = folder / "theirs.mcap"
                    expected = write_theirs(path, compression, chunked, indexed)
                    messages, problems = dump(path)
                    case = (compression, chunked, indexed)
                    assert problems == [], (case, problems)
                    assert messages == expected, case
                    path.write_bytes(path.read_bytes()[:-40])  # a recorder that was killed
                    messages, problems = dump(path)
                    assert problems, case
                    assert messages == expected, case
    print("takt and the oracle agree in both directions")


main()
