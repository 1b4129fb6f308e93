"""Masks of all ranks, of which those are kept that overlap with none that is better and kept."""
import torch
import torch.distributed as dist


def operation(count, masks, scores, keep, total) -> None:
    """count: [1], masks: [n, words], scores: [n], keep: [n], total: [1]; int32."""
    world, rank = dist.get_world_size(), dist.get_rank()
    gathered = []
    for tensor in (count, masks, scores):
        parts = torch.empty(world, *tensor.shape, dtype=tensor.dtype, device=tensor.device)
        dist.all_gather_into_tensor(parts, tensor)
        gathered.append(parts)
    counts = gathered[0].flatten().tolist()
    everything = torch.cat([gathered[1][r, : counts[r]] for r in range(world)])
    order = torch.cat([gathered[2][r, : counts[r]] for r in range(world)])
    order = torch.argsort(order, descending=True, stable=True).tolist()
    shifts = torch.arange(32, device=masks.device, dtype=torch.int32)
    pixels = ((everything.unsqueeze(-1) >> shifts) & 1).flatten(1)
    both = (pixels.unsqueeze(0) & pixels.unsqueeze(1)).sum(dim=2)
    either = (pixels.unsqueeze(0) | pixels.unsqueeze(1)).sum(dim=2)
    overlap, alive = (5 * both > 2 * either).tolist(), [True] * len(order)
    for place, i in enumerate(order):
        for j in order[place + 1 :] if alive[i] else []:
            alive[j] = alive[j] and not overlap[i][j]
    first = sum(counts[:rank])
    own = torch.tensor(alive[first : first + counts[rank]], dtype=torch.int32)
    keep[: counts[rank]] = own.to(keep.device)
    total.fill_(sum(alive))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n, quads in ((8, 2), (32, 2)):
        count = torch.randint(0, n + 1, (1,), dtype=torch.int32, device="cuda")
        masks = torch.randint(-(2**31), 2**31, (n, 4 * quads), dtype=torch.int32, device="cuda")
        scores = torch.randint(0, 50, (n,), dtype=torch.int32, device="cuda")
        operation(count, masks, scores, torch.empty_like(scores), torch.empty_like(count))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
