"""Crops and flips against slicing by hand, and the numbers they are drawn from."""

import numpy as np
import torch
from torch import nn

from rollcall.tasks.images import Classification, CropFlip
from rollcall.tasks.streams import uniforms


def splitmix64(z):
    """The published finaliser, in Python's whole numbers."""
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_uniforms_against_whole_numbers():
    keys = torch.tensor([[0, 0], [1, 0], [0, 1], [-1, 7], [2**62, 3]])
    for seed in (0, 5):
        expected = []
        for key in keys.tolist():
            state = seed
            for word in key:
                state = splitmix64(state) ^ (word % 2**64)
            expected.append((splitmix64(state) >> 11) / 2**53)
        assert uniforms(seed, keys).tolist() == expected
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # the generator's first output from state 0


def images(n=200, c=3, h=6, w=5):
    return torch.randint(1, 256, (n, c, h, w), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def keys(n=200):
    return torch.stack([torch.full((n,), 4), torch.full((n,), 9), torch.arange(n)], dim=1)


def views(image, padding, flip):
    """All crops of the padded image, by (down, right, flipped)."""
    c, h, w = image.shape
    padded = np.zeros((c, h + 2 * padding, w + 2 * padding), dtype=np.uint8)
    padded[:, padding : padding + h, padding : padding + w] = image
    return {
        (i, j, mirrored): padded[:, i : i + h, j : j + w][:, :, :: -1 if mirrored else 1]
        for i in range(2 * padding + 1)
        for j in range(2 * padding + 1)
        for mirrored in ((False, True) if flip else (False,))
    }


def found(pixels, augmented, padding, flip=True):
    """Which view of each image was taken."""
    for image, seen in zip(pixels.numpy(), augmented.numpy(), strict=True):
        (place,) = (place for place, view in views(image, padding, flip).items() if np.array_equal(view, seen))
        yield place


def test_every_image_is_one_of_its_views_and_every_view_is_as_likely():
    pixels = images(4000, c=1)
    k = torch.cartesian_prod(torch.arange(10), torch.arange(20), torch.arange(20))
    places = list(found(pixels, CropFlip(1, padding=1)(pixels, k), padding=1))
    counts = np.array([places.count(place) for place in views(pixels[0].numpy(), 1, True)])
    assert len(counts) == 18
    assert ((counts - 4000 / 18) ** 2 / (4000 / 18)).sum() < 40.8  # 17 degrees of freedom, 0.1 %


def test_draws_follow_the_key_alone():
    pixels, k = images(), keys()
    augment = CropFlip(1, padding=2)
    whole = augment(pixels, k)
    some = torch.tensor([5, 190, 17])
    assert torch.equal(augment(pixels[some], k[some]), whole[some])
    for column in range(3):
        other = k.clone()
        other[:, column] += 1000
        assert not torch.equal(augment(pixels, other), whole)
    assert not torch.equal(CropFlip(2, padding=2)(pixels, k), whole)


def test_a_draw_for_each_minibatch_and_crops_without_a_flip():
    pixels, k = images(), keys()
    k[100:] += torch.tensor([0, 1, -100])  # the next minibatch
    places = list(found(pixels, CropFlip(1, padding=2)(pixels, k), padding=2))
    once = CropFlip(1, padding=2, per="minibatch")(pixels, k)
    assert list(found(pixels, once, padding=2)) == [places[0]] * 100 + [places[100]] * 100
    upright = CropFlip(1, padding=2, flip=False)(pixels, k)
    assert list(found(pixels, upright, padding=2)) == [(down, right, False) for down, right, _ in places]


def test_the_border_is_black_or_the_mean_colour():
    """Padding by 3 of images of one pixel: most crops show the border alone."""
    mean, std = (0.2, 0.5, 0.7), (0.1, 0.2, 0.3)
    pixels = torch.full((400, 3, 1, 1), 255, dtype=torch.uint8)
    k = torch.stack([torch.full((400,), 1), torch.full((400,), 2), torch.arange(400)], dim=1)
    seen = {}
    for fill in ("black", "mean"):
        task = Classification(nn.Identity(), mean, std, augmentation=CropFlip(0, padding=3, fill=fill))
        images, _ = task.augment((pixels, torch.zeros(400)), k)
        seen[fill] = task.normalised(images).reshape(400, 3)
    white = torch.tensor([(1 - m) / s for m, s in zip(mean, std, strict=True)])
    border = {"black": torch.tensor([-m / s for m, s in zip(mean, std, strict=True)]), "mean": torch.zeros(3)}
    for fill, rows in seen.items():
        inside = (rows - white).abs().amax(dim=1) < 1e-6
        assert 0 < inside.sum() < 40  # one place of 49
        assert torch.allclose(rows[~inside], border[fill].expand(int((~inside).sum()), 3), atol=1e-6)
    assert torch.equal((seen["black"] - white).abs().amax(1) < 1e-6, (seen["mean"] - white).abs().amax(1) < 1e-6)
