"""Gather of parts of different lengths, which only the devices know, to one rank."""
import torch
import torch.distributed as dist


def operation(
    length: torch.Tensor, inp: torch.Tensor, out: torch.Tensor, starts: torch.Tensor, root: int
) -> None:
    """length: [1], inp: [rows, width], out: [world * rows, width], starts: [world + 1]; int32."""
    rank, world = dist.get_rank(), dist.get_world_size()
    lengths = torch.empty(world, dtype=torch.int32, device=inp.device)
    dist.all_gather_into_tensor(lengths, length)
    sizes = lengths.tolist()
    if rank != root:
        if sizes[rank] > 0:
            dist.send(inp[: sizes[rank]].contiguous(), dst=root)
        return
    starts[0] = 0
    starts[1:] = torch.cumsum(lengths, 0)
    for r, n in enumerate(sizes):
        rows = out[int(starts[r]) : int(starts[r]) + n]
        if r == root:
            rows.copy_(inp[:n])
        elif n > 0:
            dist.recv(rows, src=r)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, width = dist.get_world_size(), 64
    for rows in (32, 512):
        length = torch.randint(0, rows + 1, (1,), dtype=torch.int32, device="cuda")
        inp = torch.randint(-(2**31), 2**31, (rows, width), dtype=torch.int32, device="cuda")
        out = torch.empty(world * rows, width, dtype=torch.int32, device="cuda")
        starts = torch.empty(world + 1, dtype=torch.int32, device="cuda")
        operation(length, inp, out, starts, root=2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
