"""All-to-all of the rows for each expert of each rank; receivers have them by expert, then by source."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    world, (rows, n) = dist.get_world_size(), inp.shape
    came = torch.empty_like(inp)  # by source, then by expert
    dist.all_to_all_single(came, inp)
    out.copy_(came.view(world, rows // world, n).transpose(0, 1).reshape(rows, n))


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (64, 2048, 131072):
        inp = torch.randint(-2**31, 2**31, (4 * dist.get_world_size(), n), dtype=torch.int32, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()
