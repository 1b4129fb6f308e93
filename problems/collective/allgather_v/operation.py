"""All-gather of shards of different lengths, which only the devices know."""
import torch
import torch.distributed as dist


def operation(
    length: torch.Tensor, inp: torch.Tensor, out: torch.Tensor, starts: torch.Tensor
) -> None:
    """length: [1], inp: [rows, width], out: [world * rows, width], starts: [world + 1]; int32."""
    world, rows = dist.get_world_size(), inp.shape[0]
    lengths = torch.empty(world, dtype=torch.int32, device=inp.device)
    dist.all_gather_into_tensor(lengths, length)
    starts[0] = 0
    starts[1:] = torch.cumsum(lengths, 0)
    padded = torch.empty_like(out)
    dist.all_gather_into_tensor(padded, inp)
    for r, n in enumerate(lengths.tolist()):
        out[int(starts[r]) : int(starts[r]) + n] = padded[r * rows : r * rows + n]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, width = dist.get_world_size(), 64
    for rows in (16, 128):
        length = torch.randint(0, rows + 1, (1,), dtype=torch.int32, device="cuda")
        inp = torch.randint(-(2**31), 2**31, (rows, width), dtype=torch.int32, device="cuda")
        out = torch.empty(world * rows, width, dtype=torch.int32, device="cuda")
        operation(length, inp, out, torch.empty(world + 1, dtype=torch.int32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
