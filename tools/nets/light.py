"""Light detectors: a NanoDet-like one and EfficientDet-D0; outputs before the sigmoid."""
import torch
from torch import nn
from torch.nn import functional as F

from layers import Squeeze, ends_branch, unit


class Shuffled(nn.Module):
    """Unit of ShuffleNetV2 (Ma et al. 2018, arXiv:1807.11164): half the channels pass, then both halves interleave."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        half = outputs // 2
        self.stride = stride
        own = inputs if stride == 2 else half
        self.main = nn.Sequential(unit(own, half, act="leaky"), unit(half, half, 3, stride, half, "none"),
                                  unit(half, half, act="leaky"))
        self.side = nn.Sequential(unit(inputs, inputs, 3, 2, inputs, "none"),
                                  unit(inputs, half, act="leaky")) if stride == 2 else None

    def forward(self, x):
        kept, worked = x.chunk(2, 1) if self.side is None else (self.side(x), x)
        joined = torch.cat((kept, self.main(worked)), 1)
        batch, channels, height, width = joined.shape
        return joined.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(batch, channels, height, width)


class NanoDetLike(nn.Module):
    """After RangiLyu's NanoDet-m: ShuffleNetV2 1.0, a pyramid of sums with bilinear resizing, two separable convolutions
    per level, 80 classes and 4 x 8 distance bins from one convolution."""

    def __init__(self, width=96, outputs=80 + 4 * 8):
        super().__init__()
        self.stem = unit(3, 24, 3, 2, act="leaky")
        stages, inputs, widths = [], 24, (116, 232, 464)
        for channels, depth in zip(widths, (4, 8, 4)):
            stages.append(nn.Sequential(*(Shuffled(inputs if i == 0 else channels, channels, 2 if i == 0 else 1)
                                          for i in range(depth))))
            inputs = channels
        self.stages = nn.ModuleList(stages)
        self.lateral = nn.ModuleList(nn.Conv2d(c, width, 1) for c in widths)
        separable = lambda: nn.Sequential(unit(width, width, 3, 1, width, "leaky"), unit(width, width, act="leaky"))
        self.towers = nn.ModuleList(nn.Sequential(separable(), separable()) for _ in widths)
        self.heads = nn.ModuleList(nn.Conv2d(width, outputs, 1) for _ in widths)

    def forward(self, x):
        x = F.max_pool2d(self.stem(x), 3, 2, 1)
        levels = []
        for stage, lateral in zip(self.stages, self.lateral):
            x = stage(x)
            levels.append(lateral(x))
        resized = lambda level, factor: F.interpolate(level, scale_factor=factor, mode="bilinear")
        for i in (1, 0):
            levels[i] = levels[i] + resized(levels[i + 1], 2.0)
        for i in (1, 2):
            levels[i] = levels[i] + resized(levels[i - 1], 0.5)
        out = [head(tower(level)).flatten(2) for head, tower, level in zip(self.heads, self.towers, levels)]
        return torch.cat(out, 2).permute(0, 2, 1)


def same(x, size, stride):
    """TensorFlow's padding: what is odd goes below and right."""
    total = [max((-(-extent // stride) - 1) * stride + size - extent, 0) for extent in x.shape[2:]]
    (h, w) = total
    return F.pad(x, (w // 2, w - w // 2, h // 2, h - h // 2)) if h or w else x


class Same(nn.Module):
    """Convolution with that padding, BatchNorm, swish."""

    def __init__(self, inputs, outputs, size=1, stride=1, groups=1, act=True, branch=False):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, groups=groups, bias=False)
        self.norm, self.act = nn.BatchNorm2d(outputs, eps=1e-3), act
        if branch:
            ends_branch(self.norm)

    def forward(self, x):
        x = self.norm(self.conv(same(x, self.conv.kernel_size[0], self.conv.stride[0])))
        return x * x.sigmoid() if self.act else x


class MobileInverted(nn.Module):
    """MBConv of EfficientNet (Tan and Le 2019, arXiv:1905.11946)."""

    def __init__(self, inputs, outputs, expansion, size, stride):
        super().__init__()
        inner = inputs * expansion
        self.shortcut = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(*([Same(inputs, inner)] if expansion > 1 else []),
                                    Same(inner, inner, size, stride, inner),
                                    Squeeze(inner, inputs // 4, "silu", torch.sigmoid),
                                    Same(inner, outputs, act=False, branch=self.shortcut))

    def forward(self, x):
        return x + self.layers(x) if self.shortcut else self.layers(x)


class Separable(nn.Module):
    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.depth = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.point = nn.Conv2d(inputs, outputs, 1, bias=bias)

    def forward(self, x):
        return self.point(self.depth(x))


class Fusion(nn.Module):
    """Weighted sum, swish, separable convolution: "fast normalised fusion" of the paper."""

    def __init__(self, channels, inputs):
        super().__init__()
        self.weights = nn.Parameter(torch.linspace(0.5, 1.5, inputs))
        self.conv, self.norm = Separable(channels, channels), nn.BatchNorm2d(channels, eps=1e-3)

    def forward(self, *inputs):
        weights = F.relu(self.weights)
        weights = weights / (weights.sum() + 1e-4)
        x = sum(weights[i] * each for i, each in enumerate(inputs))
        return self.norm(self.conv(x * x.sigmoid()))


class BiFpn(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down = nn.ModuleList(Fusion(channels, 2) for _ in range(4))
        self.up = nn.ModuleList(Fusion(channels, 3 if i < 3 else 2) for i in range(4))

    def forward(self, levels):
        middle = [None] * 4 + [levels[4]]
        for i in (3, 2, 1, 0):
            middle[i] = self.down[i](levels[i], F.interpolate(middle[i + 1], scale_factor=2, mode="nearest"))
        out = [middle[0]]
        for i in (1, 2, 3, 4):
            coarser = F.max_pool2d(same(out[-1], 3, 2), 3, 2)
            out.append(self.up[i - 1](levels[i], middle[i], coarser) if i < 4 else self.up[3](levels[4], coarser))
        return out


class EfficientDet(nn.Module):
    """D0 (Tan et al. 2020, arXiv:1911.09070): EfficientNet-B0, 3 BiFPNs of 64 channels, heads of 3 layers that share
    convolutions over the levels but not BatchNorm; 9 anchors, 90 classes."""

    def __init__(self, width=64, anchors=9, classes=90):
        super().__init__()
        self.stem = Same(3, 32, 3, 2)
        blocks, inputs, self.levels = [], 32, []
        for expansion, size, outputs, depth, stride in ((1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2),
                                                        (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
                                                        (6, 3, 320, 1, 1)):
            for i in range(depth):
                blocks.append(MobileInverted(inputs, outputs, expansion, size, stride if i == 0 else 1))
                inputs = outputs
            if outputs in (40, 112, 320):
                self.levels.append(len(blocks) - 1)
        self.blocks = nn.ModuleList(blocks)
        norm = lambda: nn.BatchNorm2d(width, eps=1e-3)
        self.lateral = nn.ModuleList(nn.Sequential(nn.Conv2d(c, width, 1), norm()) for c in (40, 112, 320, 320))
        self.fusions = nn.Sequential(*(BiFpn(width) for _ in range(3)))
        self.towers = nn.ModuleList(nn.ModuleList(Separable(width, width) for _ in range(3)) for _ in range(2))
        self.norms = nn.ModuleList(nn.ModuleList(nn.ModuleList(norm() for _ in range(3)) for _ in range(5))
                                   for _ in range(2))
        self.heads = nn.ModuleList((Separable(width, anchors * classes), Separable(width, anchors * 4)))

    def forward(self, x):
        x, levels = self.stem(x), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in self.levels:
                levels.append(x)
        pooled = lambda level: F.max_pool2d(same(level, 3, 2), 3, 2)
        levels = [lateral(level) for lateral, level in zip(self.lateral, levels + [levels[2]])]
        levels[3] = pooled(levels[3])
        levels.append(pooled(levels[3]))
        outputs = []
        levels = self.fusions(levels)
        for tower, norms, head, values in zip(self.towers, self.norms, self.heads, (90, 4)):
            parts = []
            for level, own in zip(levels, norms):
                for conv, norm in zip(tower, own):
                    level = norm(conv(level))
                    level = level * level.sigmoid()
                parts.append(head(level).permute(0, 2, 3, 1).reshape(x.shape[0], -1, values))
            outputs.append(torch.cat(parts, 1))
        return tuple(outputs)
