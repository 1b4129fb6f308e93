"""Expert exchange in subgroups: ragged all-gather of tokens, reduce-scatter of answers."""
import torch
import torch.distributed as dist


def operation(group, rows: int, x, y, counts, gathered, out) -> None:
    """group: the subgroup's process group. x: [most, width]; y, gathered: [size * most, width]."""
    size, me, most = dist.get_world_size(group), dist.get_rank(group), x.shape[0]
    everyone = torch.empty(size, dtype=torch.int32, device=x.device)
    dist.all_gather_into_tensor(everyone, torch.tensor([rows], dtype=torch.int32, device=x.device), group=group)
    counts[:size] = everyone
    sizes = everyone.tolist()
    padded = torch.empty(size, *x.shape, device=x.device)
    dist.all_gather_into_tensor(padded, x, group=group)
    gathered[: sum(sizes)] = torch.cat([padded[s, :n] for s, n in enumerate(sizes)])
    shares = torch.zeros_like(padded)
    for s, part in enumerate(y[: sum(sizes)].split(sizes)):
        shares[s, : sizes[s]] = part
    answer = torch.empty_like(x)
    dist.reduce_scatter_tensor(answer, shares, group=group)
    out[:rows] = answer[: sizes[me]]


def main() -> None:
    dist.init_process_group("nccl")
    rank, world, size = dist.get_rank(), dist.get_world_size(), 4
    torch.cuda.set_device(rank)
    groups = [dist.new_group(list(range(i, min(i + size, world)))) for i in range(0, world, size)]
    for most, width in ((16, 128), (64, 256)):
        rows = int(torch.randint(0, most + 1, (1,)))
        x = torch.randn(most, width, device="cuda")
        y = torch.randint(-1000, 1001, (size * most, width), device="cuda").float()
        counts = torch.empty(size, dtype=torch.int32, device="cuda")
        operation(groups[rank // size], rows, x, y, counts, torch.empty_like(y), torch.empty_like(x))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
