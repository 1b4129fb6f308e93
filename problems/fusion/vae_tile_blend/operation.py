"""Overlapping tiles of an image, upsampled on all ranks, gathered and blended."""
import torch
import torch.distributed as dist


def operation(latent, out, rows: int, cols: int, edge: int) -> None:
    """latent: [slots, channels, side, side], out: [slots, channels, 2 * side, 2 * side]."""
    world, rank = dist.get_world_size(), dist.get_rank()
    slots, channels, side, _ = latent.shape
    every = torch.empty(world * slots, channels, side, side, device=latent.device)
    dist.all_gather_into_tensor(every, latent)
    overlap, step = 2 * edge, 2 * (side - edge)
    share = torch.arange(overlap, device=latent.device) / overlap

    def pixels(tile: int) -> torch.Tensor:
        at = tile % world * slots + tile // world
        return every[at].repeat_interleave(2, 1).repeat_interleave(2, 2)

    def beside(tile: int) -> torch.Tensor:  # blended with the tile to the left
        own = pixels(tile)
        if tile % cols > 0:
            left = pixels(tile - 1)[:, :, step:]
            own[:, :, :overlap] = own[:, :, :overlap] * share + left * (1 - share)
        return own

    for tile in range(rank, rows * cols, world):
        own, v = beside(tile), share[:, None]
        if tile >= cols:
            above = beside(tile - cols)[:, step:]
            own[:, :overlap] = own[:, :overlap] * v + above * (1 - v)
        height = 2 * side if tile // cols + 1 == rows else step
        width = 2 * side if tile % cols + 1 == cols else step
        out[tile // world, :, :height, :width] = own[:, :height, :width]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    slots = -(-16 // dist.get_world_size())
    for side in (32, 64):
        latent = torch.randint(-1000, 1001, (slots, 2, side, side), device="cuda").float()
        operation(latent, torch.empty(slots, 2, 2 * side, 2 * side, device="cuda"), 4, 4, 8)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
