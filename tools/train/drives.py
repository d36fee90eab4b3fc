"""Simulated drives as labelled pictures: reads takt's MCAP logs and projects the truth into the camera.

Rule of the labels. Box: the eight corners of the true 3-D box, cut at the camera's near plane, projected, cut at the
picture's edges. `visible`: share of that box's silhouette in the picture that no nearer true box covers. An object
  counts     when its box is at least 16 px high and 6 px wide (of 640x384), visible >= 0.35 and the LiDAR returns
             at least one point from it (so that no scenery hides it),
  is ignored when it does not count but is visible >= 0.05: neither right nor wrong to find,
  is left out otherwise.
"""
import io
import os
import struct

import numpy as np

VEHICLE, PEDESTRIAN = 0, 1
CLASSES = ("vehicle", "pedestrian")
MIN_HEIGHT, MIN_WIDTH, MIN_VISIBLE, MIN_SEEN = 16, 6, 0.35, 0.05
_NEAR = 0.3  # m
_COARSE = 2  # visibility is found on every second pixel
_LABELS = 2  # version of the rule, part of the cache's name


def messages(path, topics):
    """(topic, publish time in ns, decoded protobuf message) of an MCAP file in its order."""
    import zstandard
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89MCAP0\r\n":
        raise ValueError(f"{path}: no MCAP file")
    schemas, channels = {}, {}

    def text(at):
        size = struct.unpack_from("<I", body, at)[0]
        return body[at + 4:at + 4 + size], at + 4 + size

    stack = [(data, 8, len(data) - 8)]
    while stack:
        buffer, at, end = stack.pop()
        while at < end:
            opcode, size = struct.unpack_from("<BQ", buffer, at)
            body = buffer[at + 9:at + 9 + size]
            at += 9 + size
            if opcode == 3:  # schema
                name, next_at = text(2)
                _, next_at = text(next_at)
                schemas[struct.unpack_from("<H", body)[0]] = (name.decode(), text(next_at)[0])
            elif opcode == 4:  # channel
                channel, schema = struct.unpack_from("<HH", body)
                topic = text(4)[0].decode()
                if channel not in channels and topic in topics:
                    name, files = schemas[schema]
                    pool = descriptor_pool.DescriptorPool()
                    for one in descriptor_pb2.FileDescriptorSet.FromString(files).file:
                        pool.Add(one)
                    factory = message_factory.MessageFactory(pool)
                    channels[channel] = (topic, factory.GetPrototype(pool.FindMessageTypeByName(name)))
            elif opcode == 5:  # message
                channel, _, _, published = struct.unpack_from("<HIQQ", body)
                if channel in channels:
                    topic, kind = channels[channel]
                    yield topic, published, kind.FromString(body[22:])
            elif opcode == 6:  # chunk
                unpacked = struct.unpack_from("<Q", body, 16)[0]
                compression, next_at = text(28)
                records = body[next_at + 8:]
                if compression == b"zstd":
                    records = zstandard.ZstdDecompressor().decompress(records, max_output_size=unpacked)
                elif compression:
                    raise ValueError(f"{path}: chunk compressed with {compression.decode()}")
                stack += [(buffer, at, end), (records, 0, len(records))]
                break


def _rotation(w, x, y, z):
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


_CORNERS = np.array([[x, y, z] for x in (-.5, .5) for y in (-.5, .5) for z in (-.5, .5)])
_FACES = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]


def _cut(polygon, distance):
    """The part of a polygon (points [n, 3]) where `distance`, an affine function of a point, is not negative."""
    kept = []
    for p, q in zip(polygon, polygon[1:] + polygon[:1]):
        a, b = distance(p), distance(q)
        if a >= 0:
            kept.append(p)
        if (a < 0) != (b < 0):
            kept.append(p + (q - p) * (a / (a - b)))
    return kept


class Camera:
    """Pinhole camera of a rig (takt rig YAML as a mapping); boxes come in the vehicle frame."""

    def __init__(self, rig):
        sensor = next(s for s in rig["sensors"] if s["kind"] == "camera")
        lens = sensor["camera"]
        if any(lens["distortion"]):
            raise ValueError("labels need an undistorted camera")
        self.topic = sensor["topic"]
        self.width, self.height = lens["width_px"], lens["height_px"]
        self.f = np.array([lens["fx_px"], lens["fy_px"]])
        self.c = np.array([lens["cx_px"], lens["cy_px"]])
        self.origin = np.array(sensor["extrinsics"]["translation_m"])
        self.rotation = _rotation(*sensor["extrinsics"]["quaternion_wxyz"])  # vehicle <- camera
        left, top = (-0.5 - self.c) / self.f
        right, bottom = (np.array([self.width, self.height]) - 0.5 - self.c) / self.f
        # Inside: normal @ p >= offset.
        self.pyramid = [(np.array(n), o) for n, o in (((0, 0, 1.), _NEAR), ((1, 0, -left), 0), ((-1, 0, right), 0),
                                                      ((0, 1, -top), 0), ((0, -1, bottom), 0))]
        u = np.arange(_COARSE / 2 - 0.5, self.width, _COARSE)
        v = np.arange(_COARSE / 2 - 0.5, self.height, _COARSE)
        rays = np.stack([*np.meshgrid((u - self.c[0]) / self.f[0], (v - self.c[1]) / self.f[1])] +
                        [np.ones((len(v), len(u)))], -1)
        self.rays = rays @ self.rotation.T  # z of the camera frame = 1 along each

    def box(self, centre, rotation, size):
        """[left, top, right, bottom] in pixel edges (0..width), or None outside of the picture."""
        corners = ((_CORNERS * size) @ rotation.T + centre - self.origin) @ self.rotation
        if corners[:, 2].max() < _NEAR:
            return None
        if corners[:, 2].min() < _NEAR:  # partly beside or behind the camera: cut by the picture's pyramid
            points = []
            for face in _FACES:
                polygon = [corners[i] for i in face]
                for normal, offset in self.pyramid:
                    polygon = _cut(polygon, lambda p, n=normal, o=offset: n @ p - o)
                points += polygon
            if not points:
                return None
            corners = np.array(points)
        uv = corners[:, :2] / corners[:, 2:] * self.f + self.c + 0.5  # pixel centres at whole numbers -> edges
        low = np.maximum(uv.min(0), 0)
        high = np.minimum(uv.max(0), [self.width, self.height])
        return None if (high - low < 1).any() else np.concatenate([low, high])

    def depth(self, centre, rotation, size, box):
        """Coarse pixels inside `box` and the depth of the true box at each (inf beside its silhouette)."""
        x0, y0 = (box[:2] // _COARSE).astype(int)
        x1, y1 = np.ceil(box[2:] / _COARSE).astype(int)
        window = (slice(y0, y1), slice(x0, x1))
        rays = self.rays[window] @ rotation
        start = (self.origin - centre) @ rotation
        with np.errstate(divide="ignore", invalid="ignore"):
            a = (-size / 2 - start) / rays
            b = (size / 2 - start) / rays
        enter, leave = np.minimum(a, b).max(-1), np.maximum(a, b).min(-1)
        return window, np.where((enter <= leave) & (leave > 0), np.maximum(enter, 0), np.inf)

    def labels(self, solids):
        """Rows [left, top, right, bottom, class, counts, visible, distance in m] of what a picture shows."""
        found, nearest = [], np.full(self.rays.shape[:2], np.inf)
        for kind, points, centre, quaternion, size in solids:
            rotation = _rotation(*quaternion)
            box = self.box(centre, rotation, size)
            if box is None:
                continue
            window, depth = self.depth(centre, rotation, size, box)
            nearest[window] = np.minimum(nearest[window], depth)
            found.append((kind, points, centre, box, window, depth))
        rows = []
        for kind, points, centre, box, window, depth in found:
            silhouette = np.isfinite(depth)
            visible = (silhouette & (depth <= nearest[window])).sum() / max(1, silhouette.sum())
            if visible < MIN_SEEN:
                continue
            large = box[3] - box[1] >= MIN_HEIGHT and box[2] - box[0] >= MIN_WIDTH
            counts = large and visible >= MIN_VISIBLE and points > 0
            rows.append([*box, kind, counts, visible, np.hypot(*(centre - self.origin)[:2])])
        return np.array(rows, np.float32).reshape(-1, 8)


_KINDS = {1: VEHICLE, 2: PEDESTRIAN}  # takt.ObjectClass


def solids_at(truths, stamp):
    """(class, LiDAR points, centre, quaternion wxyz, size) of every true box at `stamp`, between two truths on the
    straight line between them. `truths`: (stamp in ns, takt.Truth) in their order."""
    after = next((i for i, (t, _) in enumerate(truths) if t >= stamp), len(truths) - 1)
    before = max(0, after - 1) if truths[after][0] != stamp else after
    (t0, first), (t1, second) = truths[before], truths[after]
    if not t0 <= stamp <= t1:
        raise ValueError(f"no truth around the picture at {stamp} ns")
    part = (stamp - t0) / (t1 - t0) if t1 > t0 else 0.0
    earlier = {item.id: item for item in first.boxes}

    def vector(of, names):
        return np.array([getattr(of, name) for name in names])

    solids = []
    for item in second.boxes:
        if item.object_class not in _KINDS or item.id not in earlier:
            continue
        old = earlier[item.id]
        centres = [vector(x.position, "xyz") for x in (old, item)]
        turns = [vector(x.orientation, "wxyz") for x in (old, item)]
        if turns[0] @ turns[1] < 0:
            turns[1] = -turns[1]
        turn = turns[0] + part * (turns[1] - turns[0])
        solids.append((_KINDS[item.object_class], max(old.lidar_points, item.lidar_points),
                       centres[0] + part * (centres[1] - centres[0]), turn / np.linalg.norm(turn),
                       vector(item.size, "xyz")))
    return solids


def load(path, rig):
    """(pictures uint8[n, h, w, 3], list of n label arrays); cached beside the log.

    Pictures after the last truth are left out.
    """
    cache = f"{path}.{_LABELS}.npz"
    if os.path.exists(cache):
        with np.load(cache) as stored:
            rows, owner = stored["rows"], stored["owner"]
            return stored["pictures"], [rows[owner == i] for i in range(len(stored["pictures"]))]
    from PIL import Image

    camera = Camera(rig)
    pictures, truths = [], []
    for topic, stamp, message in messages(path, (camera.topic, "/truth/takt")):
        (pictures if topic == camera.topic else truths).append((stamp, message))
    truths.sort(key=lambda item: item[0])
    out, labels = [], []
    for stamp, message in pictures:
        if stamp > truths[-1][0]:
            continue
        out.append(np.asarray(Image.open(io.BytesIO(message.data)).convert("RGB")))
        labels.append(camera.labels(solids_at(truths, stamp)))
    out = np.stack(out)
    owner = np.repeat(np.arange(len(labels)), [len(rows) for rows in labels])
    with open(cache + ".part", "wb") as file:
        np.savez(file, pictures=out, rows=np.concatenate(labels), owner=owner)
    os.replace(cache + ".part", cache)
    return out, labels
