"""All-gather along the last dimension, with the layout pass that a gather along the first needs."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [rows, width], out: [rows, world * width]; words of 32 bits."""
    world, (rows, width) = dist.get_world_size(), inp.shape
    stacked = torch.empty(world * rows, width, dtype=inp.dtype, device=inp.device)
    dist.all_gather_into_tensor(stacked, inp)
    out.copy_(stacked.view(world, rows, width).transpose(0, 1).reshape(rows, world * width))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    width = 64
    for rows in (16, 128):
        inp = torch.randint(-(2**31), 2**31, (rows, width), dtype=torch.int32, device="cuda")
        out = torch.empty(rows, dist.get_world_size() * width, dtype=inp.dtype, device="cuda")
        operation(inp, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
