"""Three generations of YOLO, with their heads as exporters write them: boxes and class scores behind the sigmoid in one
tensor, and the class logits before it as a second output, so that comparisons are not flattened.

YOLOX-s: Ge et al. 2021 (arXiv:2107.08430). YOLOv8n: no paper; its published architecture (C2f blocks, anchor-free head
with distribution focal loss, Li et al. 2020, arXiv:2006.04388). YOLO11n: likewise (C3k2 blocks, attention in the last
stage, depthwise class head).
"""
import torch
from torch import nn
from torch.nn import functional as F

from layers import unit

CLASSES = 80


def silu(inputs, outputs, size=1, stride=1, groups=1, act="silu", branch=False):
    return unit(inputs, outputs, size, stride, groups, act, eps=1e-3, branch=branch)


def twice(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


class Shortcut(nn.Module):
    """Two convolutions around a shortcut, or without it."""

    def __init__(self, channels, inner, sizes, shortcut):
        super().__init__()
        self.layers = nn.Sequential(silu(channels, inner, sizes[0]), silu(inner, channels, sizes[1], branch=shortcut))
        self.shortcut = shortcut

    def forward(self, x):
        return x + self.layers(x) if self.shortcut else self.layers(x)


class CrossStage(nn.Module):
    """Half the channels through the blocks, half past them (CSPNet, Wang et al. 2019, arXiv:1911.11929)."""

    def __init__(self, inputs, outputs, depth, sizes, shortcut=True):
        super().__init__()
        inner = outputs // 2
        self.through, self.past = silu(inputs, inner), silu(inputs, inner)
        self.blocks = nn.Sequential(*(Shortcut(inner, inner, sizes, shortcut) for _ in range(depth)))
        self.join = silu(2 * inner, outputs)

    def forward(self, x):
        return self.join(torch.cat((self.blocks(self.through(x)), self.past(x)), 1))


class Fan(nn.Module):
    """C2f of YOLOv8 and C3k2 of YOLO11: every block's result is kept and joined."""

    def __init__(self, inputs, outputs, blocks, inner):
        super().__init__()
        self.inner, self.blocks = inner, nn.ModuleList(blocks)
        self.split, self.join = silu(inputs, 2 * inner), silu((2 + len(blocks)) * inner, outputs)

    def forward(self, x):
        parts = list(self.split(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.join(torch.cat(parts, 1))


class Pooled(nn.Module):
    """Spatial pyramid pooling: three windows side by side, or (fast) one window three times over."""

    def __init__(self, inputs, outputs, fast):
        super().__init__()
        self.fast, inner = fast, inputs // 2
        self.reduce, self.join = silu(inputs, inner), silu(4 * inner, outputs)

    def forward(self, x):
        parts = [self.reduce(x)]
        for size in (5, 9, 13):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2) if self.fast else F.max_pool2d(parts[0], size, 1, size // 2))
        return self.join(torch.cat(parts, 1))


class Focus(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.conv = silu(12, outputs, 3)

    def forward(self, x):
        corners = (x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2])
        return self.conv(torch.cat(corners, 1))


class Pyramid(nn.Module):
    """Backbone, then top-down and bottom-up paths (PANet, Liu et al. 2018, arXiv:1803.01534): levels of stride 8, 16, 32."""

    def __init__(self, backbone, down, up):
        super().__init__()
        self.backbone = nn.ModuleList(backbone)  # each ends in a level
        self.reduce = nn.ModuleList(nn.Identity() if r is None else r for r, _ in down)
        self.merge_down = nn.ModuleList(m for _, m in down)
        self.stride = nn.ModuleList(s for s, _ in up)
        self.merge_up = nn.ModuleList(m for _, m in up)

    def forward(self, x):
        levels = []
        for stage in self.backbone:
            x = stage(x)
            levels.append(x)
        fine, middle, coarse = levels
        kept_coarse = self.reduce[0](coarse)
        kept_middle = self.reduce[1](self.merge_down[0](torch.cat((twice(kept_coarse), middle), 1)))
        out = [self.merge_down[1](torch.cat((twice(kept_middle), fine), 1))]
        for stride, merge, kept in zip(self.stride, self.merge_up, (kept_middle, kept_coarse)):
            out.append(merge(torch.cat((stride(out[-1]), kept), 1)))
        return out


class YoloX(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda i, o, n, shortcut=True: CrossStage(i, o, n, (1, 3), shortcut)
        self.pyramid = Pyramid(
            (nn.Sequential(Focus(32), silu(32, 64, 3, 2), block(64, 64, 1), silu(64, 128, 3, 2), block(128, 128, 3)),
             nn.Sequential(silu(128, 256, 3, 2), block(256, 256, 3)),
             nn.Sequential(silu(256, 512, 3, 2), Pooled(512, 512, False), block(512, 512, 1, False))),
            ((silu(512, 256), block(512, 256, 1, False)), (silu(256, 128), block(256, 128, 1, False))),
            ((silu(128, 128, 3, 2), block(256, 256, 1, False)), (silu(256, 256, 3, 2), block(512, 512, 1, False))))
        tower = lambda: nn.Sequential(silu(128, 128, 3), silu(128, 128, 3))
        self.stems = nn.ModuleList(silu(c, 128) for c in (128, 256, 512))
        self.class_towers, self.box_towers = (nn.ModuleList(tower() for _ in range(3)) for _ in range(2))
        self.classes, self.boxes, self.objects = (nn.ModuleList(nn.Conv2d(128, n, 1) for _ in range(3))
                                                  for n in (CLASSES, 4, 1))

    def forward(self, x):
        outputs, logits = [], []
        for i, level in enumerate(self.pyramid(x)):
            stem = self.stems[i](level)
            named, placed = self.class_towers[i](stem), self.box_towers[i](stem)
            scores = self.classes[i](named)
            outputs.append(torch.cat((self.boxes[i](placed), self.objects[i](placed).sigmoid(), scores.sigmoid()), 1))
            logits.append(scores.flatten(2))
        return torch.cat([o.flatten(2) for o in outputs], 2).permute(0, 2, 1), torch.cat(logits, 2)


class Detect(nn.Module):
    """Anchor-free head with distributions of distances over 16 bins; boxes as centre and size in pixels."""

    BINS = 16

    def __init__(self, channels, size, depthwise):
        super().__init__()
        box, named = max(16, channels[0] // 4, 4 * self.BINS), max(channels[0], min(CLASSES, 100))
        self.boxes = nn.ModuleList(nn.Sequential(silu(c, box, 3), silu(box, box, 3), nn.Conv2d(box, 4 * self.BINS, 1))
                                   for c in channels)
        if depthwise:
            tower = lambda c: (silu(c, c, 3, groups=c), silu(c, named), silu(named, named, 3, groups=named), silu(named, named))
        else:
            tower = lambda c: (silu(c, named, 3), silu(named, named, 3))
        self.classes = nn.ModuleList(nn.Sequential(*tower(c), nn.Conv2d(named, CLASSES, 1)) for c in channels)
        self.bins = nn.Conv2d(self.BINS, 1, 1, bias=False).requires_grad_(False)
        centres, strides = [], []
        for stride in (8, 16, 32):
            cells = torch.arange(size // stride) + 0.5
            rows, columns = torch.meshgrid(cells, cells, indexing="ij")
            centres.append(torch.stack((columns.flatten(), rows.flatten())))
            strides.append(torch.full((1, len(cells)**2), float(stride)))
        self.register_buffer("centres", torch.cat(centres, 1).unsqueeze(0))
        self.register_buffer("strides", torch.cat(strides, 1))

    def finish(self):
        """After random weights: the bins are the numbers 0 to 15."""
        self.bins.weight.data = torch.arange(float(self.BINS)).view(1, self.BINS, 1, 1)

    def forward(self, levels):
        joined = torch.cat([torch.cat((box(x), named(x)), 1).flatten(2)
                            for x, box, named in zip(levels, self.boxes, self.classes)], 2)
        distances, logits = joined.split((4 * self.BINS, CLASSES), 1)
        distances = distances.view(distances.shape[0], 4, self.BINS, -1).transpose(2, 1).softmax(1)
        distances = self.bins(distances).flatten(1, 2)
        before, behind = distances.chunk(2, 1)
        low, high = self.centres - before, self.centres + behind
        boxes = torch.cat(((low + high) / 2, high - low), 1) * self.strides
        return torch.cat((boxes, logits.sigmoid()), 1), logits


class YoloV8(nn.Module):
    def __init__(self, size=640):
        super().__init__()
        fan = lambda i, o, n, shortcut=False: Fan(i, o, [Shortcut(o // 2, o // 2, (3, 3), shortcut) for _ in range(n)], o // 2)
        self.pyramid = Pyramid(
            (nn.Sequential(silu(3, 16, 3, 2), silu(16, 32, 3, 2), fan(32, 32, 1, True), silu(32, 64, 3, 2),
                           fan(64, 64, 2, True)),
             nn.Sequential(silu(64, 128, 3, 2), fan(128, 128, 2, True)),
             nn.Sequential(silu(128, 256, 3, 2), fan(256, 256, 1, True), Pooled(256, 256, True))),
            ((None, fan(384, 128, 1)), (None, fan(192, 64, 1))),
            ((silu(64, 64, 3, 2), fan(192, 128, 1)), (silu(128, 128, 3, 2), fan(384, 256, 1))))
        self.detect = Detect((64, 128, 256), size, depthwise=False)

    def forward(self, x):
        return self.detect(self.pyramid(x))


class SelfAttention(nn.Module):
    """Attention over the cells of a level, with a depthwise convolution of the values as position."""

    def __init__(self, channels):
        super().__init__()
        self.heads, self.key, self.value = channels // 64, 32, 64
        self.join = silu(channels, channels + 2 * self.key * self.heads, act="none")
        self.position = silu(channels, channels, 3, groups=channels, act="none")
        self.project = silu(channels, channels, act="none", branch=True)
        self.feed = nn.Sequential(silu(channels, 2 * channels), silu(2 * channels, channels, act="none", branch=True))

    def attend(self, x):
        batch, channels, height, width = x.shape
        joined = self.join(x).view(batch, self.heads, 2 * self.key + self.value, height * width)
        q, k, v = joined.split((self.key, self.key, self.value), 2)
        weights = ((q.transpose(-2, -1) @ k) * self.key**-0.5).softmax(-1)
        out = (v @ weights.transpose(-2, -1)).view(batch, channels, height, width)
        return self.project(out + self.position(v.reshape(batch, channels, height, width)))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.feed(x)


class HalfAttention(nn.Module):
    """C2PSA: half the channels through self-attention."""

    def __init__(self, channels):
        super().__init__()
        self.split, self.join = silu(channels, channels), silu(channels, channels)
        self.attention = SelfAttention(channels // 2)

    def forward(self, x):
        a, b = self.split(x).chunk(2, 1)
        return self.join(torch.cat((a, self.attention(b)), 1))


class Yolo11(nn.Module):
    def __init__(self, size=640):
        super().__init__()
        plain = lambda i, o, inner: Fan(i, o, [Shortcut(inner, inner // 2, (3, 3), True)], inner)
        nested = lambda i, o: Fan(i, o, [CrossStage(o // 2, o // 2, 2, (3, 3))], o // 2)
        self.pyramid = Pyramid(
            (nn.Sequential(silu(3, 16, 3, 2), silu(16, 32, 3, 2), plain(32, 64, 16), silu(64, 64, 3, 2),
                           plain(64, 128, 32)),
             nn.Sequential(silu(128, 128, 3, 2), nested(128, 128)),
             nn.Sequential(silu(128, 256, 3, 2), nested(256, 256), Pooled(256, 256, True), HalfAttention(256))),
            ((None, plain(384, 128, 64)), (None, plain(256, 64, 32))),
            ((silu(64, 64, 3, 2), plain(192, 128, 64)), (silu(128, 128, 3, 2), nested(384, 256))))
        self.detect = Detect((64, 128, 256), size, depthwise=True)

    def forward(self, x):
        return self.detect(self.pyramid(x))
