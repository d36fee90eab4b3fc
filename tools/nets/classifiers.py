"""ResNet-50, MobileNetV2 and MobileNetV3-Large, written out from the papers; output: 1000 logits."""
from torch import nn
from torch.nn import functional as F

from layers import Squeeze, unit


class Bottleneck(nn.Module):
    """1x1, 3x3 with the stride, 1x1 (He et al. 2015, arXiv:1512.03385, in the form that every package ships: v1.5)."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(unit(inputs, width), unit(width, width, 3, stride), unit(width, outputs, act="none", branch=True))
        self.shortcut = unit(inputs, outputs, 1, stride, act="none") if stride > 1 or inputs != outputs else None

    def forward(self, x):
        return F.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


class ResNet50(nn.Module):
    def __init__(self, features=False):
        super().__init__()
        self.stem = unit(3, 64, 7, 2)
        stages, inputs = [], 64
        for width, depth in ((64, 3), (128, 4), (256, 6), (512, 3)):
            blocks = []
            for i in range(depth):
                blocks.append(Bottleneck(inputs, width, 2 if i == 0 and width > 64 else 1))
                inputs = 4 * width
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.ModuleList(stages)
        self.classifier = None if features else nn.Linear(inputs, 1000)

    def forward(self, x):
        x = F.max_pool2d(self.stem(x), 3, 2, 1)
        for stage in self.stages:
            x = stage(x)
        return x if self.classifier is None else self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Inverted(nn.Module):
    """Expand, depthwise, optionally squeeze and excite, project (Sandler et al. 2018, arXiv:1801.04381)."""

    def __init__(self, inputs, inner, outputs, size, stride, act, squeeze=None):
        super().__init__()
        layers = [] if inner == inputs else [unit(inputs, inner, act=act)]
        layers.append(unit(inner, inner, size, stride, inner, act))
        if squeeze is not None:
            layers.append(squeeze)
        self.shortcut = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(*layers, unit(inner, outputs, act="none", branch=self.shortcut))

    def forward(self, x):
        return x + self.layers(x) if self.shortcut else self.layers(x)


class MobileNetV2(nn.Module):
    """Table 2 of the paper, width 1."""

    def __init__(self):
        super().__init__()
        layers, inputs = [unit(3, 32, 3, 2, act="relu6")], 32
        for expansion, outputs, depth, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                  (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(depth):
                layers.append(Inverted(inputs, inputs * expansion, outputs, 3, stride if i == 0 else 1, "relu6"))
                inputs = outputs
        self.features = nn.Sequential(*layers, unit(inputs, 1280, act="relu6"))
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


class MobileNetV3(nn.Module):
    """Large: table 1 of Howard et al. 2019, arXiv:1905.02244."""

    def __init__(self):
        super().__init__()
        layers, inputs = [unit(3, 16, 3, 2, act="hardswish")], 16
        for size, inner, outputs, squeezed, act, stride in (
                (3, 16, 16, 0, "relu", 1), (3, 64, 24, 0, "relu", 2), (3, 72, 24, 0, "relu", 1),
                (5, 72, 40, 1, "relu", 2), (5, 120, 40, 1, "relu", 1), (5, 120, 40, 1, "relu", 1),
                (3, 240, 80, 0, "hardswish", 2), (3, 200, 80, 0, "hardswish", 1), (3, 184, 80, 0, "hardswish", 1),
                (3, 184, 80, 0, "hardswish", 1), (3, 480, 112, 1, "hardswish", 1), (3, 672, 112, 1, "hardswish", 1),
                (5, 672, 160, 1, "hardswish", 2), (5, 960, 160, 1, "hardswish", 1), (5, 960, 160, 1, "hardswish", 1)):
            squeeze = Squeeze(inner, (inner // 4 + 4) // 8 * 8, "relu", F.hardsigmoid) if squeezed else None
            layers.append(Inverted(inputs, inner, outputs, size, stride, act, squeeze))
            inputs = outputs
        self.features = nn.Sequential(*layers, unit(inputs, 960, act="hardswish"))
        self.classifier = nn.Sequential(nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))
