"""Scatter of parts of different lengths, which only the root's device knows."""
import torch
import torch.distributed as dist


def operation(
    counts: torch.Tensor, inp: torch.Tensor, out: torch.Tensor, length: torch.Tensor, root: int
) -> None:
    """counts: [world], inp: [rows, width], out: [rows, width], length: [1]; int32."""
    rank = dist.get_rank()
    of_root = counts.clone()
    dist.broadcast(of_root, src=root)
    sizes = of_root.tolist()
    length[0] = sizes[rank]
    if rank != root:
        if sizes[rank] > 0:
            dist.recv(out[: sizes[rank]], src=root)
        return
    for r, part in enumerate(torch.split(inp[: sum(sizes)], sizes)):
        if r == root:
            out[: sizes[r]] = part
        elif sizes[r] > 0:
            dist.send(part.contiguous(), dst=r)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, width = dist.get_world_size(), 64
    for rows in (256, 2048):
        counts = torch.randint(0, rows // world + 1, (world,), dtype=torch.int32, device="cuda")
        inp = torch.randint(-(2**31), 2**31, (rows, width), dtype=torch.int32, device="cuda")
        length = torch.empty(1, dtype=torch.int32, device="cuda")
        operation(counts, inp, torch.empty_like(inp), length, root=2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
